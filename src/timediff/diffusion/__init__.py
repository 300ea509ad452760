"""The maths alone: nothing here knows of networks, training or medicine. Steps t count from 0, and s < t."""
