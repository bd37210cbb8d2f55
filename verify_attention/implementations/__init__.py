"""What can be put under test, one a file: each module has one `IMPLEMENTATION`, from a case to a trace."""
