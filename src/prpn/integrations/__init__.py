"""Trees to and from other libraries, each needed only by who calls for it."""
