"""ROOM 8: the figures of the paper and the numbers behind them."""
