"""GT-GAN (Jeon, Kim, Song, Cho and Park 2022)."""
