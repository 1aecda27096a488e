"""One file for each table and figure of the paper, its claim at the head."""
