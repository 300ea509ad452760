"""Networks: denoisers by name, and the parts they are made of. They know nothing of training, kernels or medicine."""
