"""One module a command; see `uitweg.main` for how one is added."""
