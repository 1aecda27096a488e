"""One module per publisher's format; each reads one split from the files that hold it."""
