"""Tell, with evidence, whether an attention bias matters.

The package imports neither numpy nor rich until something needs them, so that the command line starts at once.
"""

__version__ = "0.1.0"
