"""What adapters of libraries have in common: our conventions, said in a library's own."""
