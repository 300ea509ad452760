"""The documents that go with a synthetic cohort: a dossier to decide by, model card, datasheet, Croissant metadata."""
