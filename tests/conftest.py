"""Tests read English, whatever the locale of the machine: in a Japanese one the program answers in Japanese."""

import os

os.environ["LC_ALL"] = "C.UTF-8"
