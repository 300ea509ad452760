"""The paper (Tian et al.), table by table and figure by figure, on the data at hand: its numbers beside ours."""
