"""The maths of diffusion: two processes behind one protocol. Knows any network by its input and output alone."""
