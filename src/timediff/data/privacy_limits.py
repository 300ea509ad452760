"""How few stays may never be shown."""

MIN_AGGREGATE = 10  # real data leave only as aggregates of at least so many stays: fewer would describe persons
HIDDEN = "hidden"  # in place of what fewer say
