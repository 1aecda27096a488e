"""The paper, torch only: p(z|y) and p(y) (priors, vmf, label_prior), T (ratio), q(z|x) (posterior), objectives, the head."""
