"""C-RNN-GAN (Mogren 2016)."""
