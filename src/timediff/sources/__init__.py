"""Raw data → Cohort."""
