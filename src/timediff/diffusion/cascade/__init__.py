"""The default's cascade: static classes, then masks and categories (absorbing), then values (EDM)."""
