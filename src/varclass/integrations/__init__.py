"""Other people's libraries, one folder or file each, each an extra: nothing else in varclass imports them."""
