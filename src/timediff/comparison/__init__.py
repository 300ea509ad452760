"""Several generators on one cohort: fitted, sampled and evaluated by one call, which can be stopped and goes on."""
