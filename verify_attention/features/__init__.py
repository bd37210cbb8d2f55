"""Departures from plain attention, one a file: each module has one `FEATURE`."""
