"""f_omega: modules that turn inputs into features. None has an output layer."""
