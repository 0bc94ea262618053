"""`uitweg doctor`: what is wrong on this machine, and what an endpoint can do, by trying."""
