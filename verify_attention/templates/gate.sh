#!/bin/sh
# gate.sh CASES [OPTION…]: judge the cases, then the results anew; red where either is. What is under test, and in which
# precision, is said to both in the same words: gate.sh cases/ --implementation kernel.py:attention --dtype float16
cases=$1
shift
rm -f results.json # of a run before this one
verify-attention run "$cases" -o results.json "$@" || broken=$?
verify-attention gate results.json --cases "$cases" "$@" || broken=$?
exit "${broken:-0}"
