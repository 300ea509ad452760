"""RCGAN (Esteban, Hyland and Rätsch 2017)."""
