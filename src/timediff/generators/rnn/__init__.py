"""A standard GRU or LSTM: the next step as one number a column, unrolled from a first one."""
