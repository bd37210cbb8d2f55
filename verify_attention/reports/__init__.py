"""Forms in which a report is shown, one a file; each has a function that returns text."""
