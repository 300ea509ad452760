"""TimeGAN (Yoon, Jarrett and van der Schaar 2019)."""
