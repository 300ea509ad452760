"""What a cohort is: schema, tables, splits, and Cohort ⇄ batch of tensors."""
