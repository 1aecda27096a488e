"""Bridges to other libraries: each is an extra, and nothing here is imported unless asked for."""
