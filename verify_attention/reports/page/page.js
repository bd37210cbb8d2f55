"use strict";
document.documentElement.classList.add("js");
addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("filters"), shown = document.getElementById("shown");
  const said = document.getElementById("said"), words = form.dataset, fields = form.elements;
  const invariants = [...fields.invariant.options].slice(1).map((option) => option.value);
  const boxes = [...form.querySelectorAll("[name=status]")];
  const cases = [...document.querySelectorAll("details.case")].map((element) => ({
    element,
    letters: element.dataset.f,
    features: element.dataset.features.split(" "),
    text: `${element.querySelector("h3").textContent} ${element.dataset.tags}`.toLowerCase(),
  }));
  const by = new Map(cases.map((one) => [one.element, one]));
  const count = (letters, wanted) => [...letters].filter((letter) => wanted.has(letter)).length;
  const everything = cases.reduce((sum, one) => sum + one.letters.replaceAll("-", "").length, 0);
  const number = (value) => value.toLocaleString("en");

  // What the form says: letters of statuses, the index of an invariant or -1, a feature, a text.
  const wish = () => ({
    letters: new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.letter)),
    all: boxes.every((box) => box.checked),
    index: invariants.indexOf(fields.invariant.value),
    feature: fields.feature.value,
    text: fields.text.value.trim().toLowerCase(),
  });

  function found(one, wanted) {
    if (wanted.feature && !one.features.includes(wanted.feature)) return 0;
    if (wanted.text && !one.text.includes(wanted.text)) return 0;
    return count(wanted.index < 0 ? one.letters : one.letters[wanted.index], wanted.letters);
  }

  function fits(element, letters, wanted) {
    const index = Number(element.dataset.n);
    return (wanted.index < 0 || wanted.index === index) && wanted.letters.has(letters[index]);
  }

  function sift(one, wanted) {
    for (const element of one.element.querySelectorAll("[data-n]")) {
      element.hidden = !fits(element, one.letters, wanted);
    }
    for (const part of one.element.querySelectorAll("details.skipped, .scroll:has(> .findings)")) {
      part.hidden = !part.querySelector("[data-n]:not([hidden])");
    }
    const skipped = one.element.querySelector("details.skipped");
    if (skipped && !wanted.all && wanted.letters.has("s")) skipped.open = true;
  }

  function apply() {
    const wanted = wish(), none = wanted.all && wanted.index < 0 && !wanted.feature && !wanted.text;
    let findings = 0, left = 0;
    for (const one of cases) {
      const here = found(one, wanted);
      one.element.hidden = here === 0 && !none;
      findings += here;
      left += here > 0 || none;
      if (!one.element.hidden && one.full) sift(one, wanted);
    }
    const told = { findings, all: everything, cases: left, total: cases.length };
    shown.textContent = words.shown.replace(/{(\w+)}/g, (_, name) => number(told[name]));
  }

  // The inside of a case is a text until it is opened.
  function fill(one) {
    if (one.full) return;
    one.full = true;
    const folded = one.element.querySelector("noscript");
    folded.outerHTML = folded.textContent;
    for (const row of one.element.querySelectorAll("tr[id]")) {
      const button = row.querySelector("button"), link = document.createElement("a");
      button.title = document.getElementById(button.getAttribute("popovertarget")).querySelector("p").textContent;
      link.href = `#${row.id}`;
      link.className = "self";
      link.textContent = "#";
      link.setAttribute("aria-label", `${words.link}: ${button.textContent}`);
      button.after(link);
    }
    sift(one, wish());
  }

  function address() {
    const state = new URLSearchParams();
    if (!wish().all) state.set("status", boxes.filter((box) => box.checked).map((box) => box.value).join(","));
    for (const name of ["invariant", "feature", "text"]) if (fields[name].value) state.set(name, fields[name].value);
    return `#${state}`;
  }

  function restore(state) {
    const statuses = state.get("status")?.split(",");
    for (const box of boxes) box.checked = !statuses || statuses.includes(box.value);
    for (const name of ["invariant", "feature", "text"]) fields[name].value = state.get(name) ?? "";
    apply();
  }

  function go(place) {
    const id = place.split("--")[0], one = by.get(document.getElementById(id));
    if (!one) return;
    fill(one);
    one.element.open = true;
    const target = document.getElementById(place) ?? one.element, whole = target === one.element;
    if (target.hidden) restore(new URLSearchParams());
    target.closest("details.skipped")?.setAttribute("open", "");
    document.querySelector(".marked")?.classList.remove("marked");
    if (!whole) {
      target.classList.add("marked");
      target.tabIndex = -1;
    }
    const show = () => target.scrollIntoView({ block: whole ? "start" : "center" });
    (whole ? target.querySelector("summary") : target).focus({ preventScroll: true });
    show();
    requestAnimationFrame(show); // what is above has its true height only now
  }

  function follow() {
    let hash = location.hash.slice(1);
    if (/^(status|invariant|feature|text)=/.test(hash)) {
      restore(new URLSearchParams(hash));
      document.getElementById("cases-title").focus({ preventScroll: true });
      document.getElementById("cases").scrollIntoView();
      return;
    }
    try { hash = decodeURIComponent(hash); } catch { /* it is as it is */ }
    if (hash.startsWith("case-")) go(hash);
  }

  async function copy(button) {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      said.textContent = words.copied;
    } catch {
      getSelection().selectAllChildren(code);
      said.textContent = document.execCommand("copy") ? words.copied : words.failed;
    }
    const before = button.textContent;
    button.textContent = said.textContent;
    setTimeout(() => { button.textContent = before; said.textContent = ""; }, 1500);
  }

  const theme = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  theme.textContent = isDark() ? words.light : words.dark;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    theme.textContent = isDark() ? words.light : words.dark;
  });

  const changed = () => { apply(); history.replaceState(null, "", address()); };
  form.addEventListener("input", changed);
  form.addEventListener("reset", () => setTimeout(changed));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (button) copy(button);
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) follow(); // the same address again is no change of it
    if (link) link.closest("[popover]")?.hidePopover();
  });
  document.addEventListener("toggle", (event) => { if (event.target.open) { const one = by.get(event.target); if (one) fill(one); } }, true);
  addEventListener("hashchange", () => (location.hash ? follow() : restore(new URLSearchParams())));

  // On paper everything that is shown is open.
  let opened = null;
  function unfold() {
    if (opened) return;
    opened = [];
    for (const one of cases) {
      if (one.element.hidden) continue;
      fill(one);
      for (const part of [one.element, ...one.element.querySelectorAll("details")]) {
        if (!part.open) { part.open = true; opened.push(part); }
      }
    }
  }
  function refold() {
    for (const part of opened ?? []) part.open = false;
    opened = null;
  }
  addEventListener("beforeprint", unfold);
  addEventListener("afterprint", refold);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? unfold() : refold()));

  apply();
  addEventListener("load", follow); // a browser that goes to a fragment takes the focus away until then
});
