"""Tests are about English, also where the locale is Japanese: programs that they start inherit it."""

import os

os.environ["LC_ALL"] = "C.UTF-8"
