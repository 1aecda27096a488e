"""Break the core in one line at a time; the tests must notice every time. Run by `make mutants`, not collected by pytest.

python tests/mutants.py [words]    only the mutants whose description contains the words
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUSPECTS = ["tests/identities", "tests/references", "tests/contracts", "tests/core", "tests/test_classifier.py"]
SLOW = "stability or optimal_q or compile or processes"  # what these would notice, a faster test notices too

# (file in src/varclass, what stands there, what the mutant writes, what that breaks)
MUTANTS = [
    ("core/gaussian_density.py", "spread = log_sigma.mean(-1)", "spread = 0 * log_sigma.mean(-1)", "log-determinant"),
    ("core/gaussian_density.py", "0.5 * LOG_2PI", "0.0", "2 pi"),
    ("core/gaussian_density.py", "center = (offset / inverse).detach().mean(0)", "center = torch.zeros_like(offset[0])", "centring"),
    ("core/gaussian_density.py", "excess.T, alpha=-0.5", "excess.T, alpha=0.5", "sign of z^2"),
    ("core/gaussian_density.py", "alpha=0.5 * shrink**2 / dim", "alpha=shrink**2 / dim", "|mu|^2"),
    ("core/gaussian_density.py", "if grad_own and grad_own[0] is not None:", "if False:", "prior's gradient in VC"),
    ("core/gaussian_density.py", "torch.addcmul(center * grad_offset, offset, first, value=-shrink)", "torch.addcmul(center * grad_offset, offset, first, value=shrink)", "gradient of sigma"),
    ("core/gaussian_density.py", "grad, weight, beta=-1", "grad, weight, beta=1", "gradient of z"),
    ("core/gaussian_density.py", "else grad_z - pull", "else grad_z", "gradient of the common part"),
    ("core/gaussian_density.py", "offset - center\n", "offset\n", "centring, equal covariances"),
    ("core/gaussian_density.py", "torch.addcmul(shift, length", "torch.addcmul(0 * shift, length", "p(y) in a prediction"),
    ("core/gaussian_density.py", "bias if shift is None else bias + shift", "bias", "p(y), equal covariances"),
    ("core/gaussian_density.py", "counts if ctx.needs_input_grad[4] else None", "None", "log p(y|z) moves pi if told to"),
    ("core/priors.py", "log_sigma + math.log(self._factor)", "log_sigma", "calibration factor"),
    ("core/priors.py", "torch.sin(rows(self.log_scale, which) * (self._units() / limit))", "(rows(self.log_scale, which) * (self._units() / limit))", "bound on sigma"),
    ("core/priors.py", "at_mean - 0.5 * torch", "at_mean + 0.5 * torch", "sign of a class's own density"),
    ("core/priors.py", "self.log_sigma(y).exp(), standard", "self.log_sigma(y), standard", "sigma of samples"),
    ("core/priors.py", "rows(self.offset.detach(), y)", "rows(self.offset, y)", "standardize detaches the mean"),
    ("core/priors.py", "inverse = torch.exp(-self.log_sigma(y).detach())", "inverse = torch.exp(-self.log_sigma(y))", "standardize detaches sigma"),
    ("core/priors.py", 'if self.means == "learned":', "if True:", "fixed means stay fixed"),
    ("core/priors.py", "return 1 / self._factor", "return 1.0", "calibration leaves the means"),
    ("core/priors.py", "self.scale_factor, self.settled = state.tolist()", "pass", "the state dict keeps the calibration"),
    ("core/linear.py", "return weight, bias - weight @ prior.origin.double()", "return weight, bias", "the origin of the folded bias"),
    ("core/vmf.py", "nu = dim / 2 - 1", "nu = dim / 2", "order of the Bessel function"),
    ("core/vmf.py", "kappa * (1 - cosine)", "kappa * (1 + cosine)", "sign of the cosine"),
    ("core/vmf.py", "d * torch.log(", "0 * torch.log(", "rejection rule"),
    ("core/vmf.py", "return F.normalize(z, dim=-1)\n", "return z\n", "latents are normalised"),
    ("core/label_prior.py", "torch.softmax(log_likelihood + probs.log(), dim=1)", "torch.softmax(log_likelihood, dim=1)", "EM uses its estimate"),
    ("core/label_prior.py", "log_posterior.double() - start.log()", "log_posterior.double()", "EM divides by the trained prior"),
    ("core/ratio.py", "value.detach() for name", "value for name", "psi is frozen"),
    ("core/ratio.py", "self.weight.detach(), self.bias.detach())", "self.weight, self.bias)", "psi is frozen, linear"),
    ("core/ratio.py", "u = prior.standardize(z, y)", "u = z", "the shared ratio standardizes"),
    ("core/posterior.py", "found += [mean + step, mean - step]", "found += [mean + step, mean + step]", "antithetic pairs"),
    ("core/posterior.py", "return mean + self.scale(features) * torch.randn_like(mean)", "return mean", "the draw in training"),
    ("core/objectives.py", "F.softplus(-t_q)", "F.softplus(t_q)", "t_q's label"),
    ("core/objectives.py", "F.softplus(t_p)", "F.softplus(-t_p)", "t_p's label"),
    ("core/objectives.py", "torch.stack([z, samples])", "torch.stack([samples, z])", "t_q and t_p swapped"),
    ("core/objectives.py", "posterior_and_prior_terms(head, z, target, pull=False)", "posterior_and_prior_terms(head, z, target, pull=True)", "VC detaches z"),
    ("core/objectives.py", "prior_term(head, z if pull else z.detach(), target)", "prior_term(head, z, target)", "VC detaches z, soft or chunked"),
    ("core/objectives.py", "discriminator_term(head, z.detach(), target, drawn)", "discriminator_term(head, z, target, drawn)", "the adversary does not move phi"),
    ("core/objectives.py", "head.ratio.frozen(z, target.labels", "head.ratio(z, target.labels", "T's term does not move psi"),
    ("core/objectives.py", "return Terms(posterior + label, posterior, label)", "return Terms(posterior, posterior, label)", "log p(y) in CE"),
    ("core/objectives.py", "self.beta * (prior + ratio)", "self.beta * prior + ratio", "beta on the ratio"),
    ("core/objectives.py", "posterior + self.l1 * prior + self.l2 * ratio", "posterior + self.l2 * prior + self.l1 * ratio", "l1 and l2"),
    ("core/objectives.py", "log_label = head.log_label()", "log_label = 0 * head.log_label()", "p(y) in Bayes' rule"),
    ("core/head.py", "return log_probs if self.posterior_moves_pi else log_probs.detach()", "return log_probs", "log p(y|z) does not move pi"),
    ("core/head.py", "self.class_prior.log_prob(z, classes) + self.log_label()[classes]", "self.class_prior.log_prob(z, classes)", "p(y) in a chunk"),
    ("core/head.py", "- 2 * math.log(len(log_joints))", "- math.log(len(log_joints))", "the mean over draws"),
    ("core/head.py", "with torch.autocast(flat.device.type, enabled=False):\n            latents", "with torch.autocast(flat.device.type):\n            latents", "float32 under autocast"),
    ("core/many_classes.py", "min(start + chunk, num_classes)", "min(start + chunk - 1, num_classes)", "chunks cover every class"),
    ("core/linear.py", "return weight + shift, log_label", "return weight, log_label", "the shift that keeps p(y)"),
    ("core/linear.py", "(weight * (mean + center)).sum(1)", "(weight * mean).sum(1)", "centre of the folded bias"),
    ("core/linear.py", "bias = bias + weight @ head.projection.bias.double()", "pass", "the projection's bias"),
    ("core/targets.py", "/ self.weight.sum()", "/ len(values)", "weighted means"),
    ("core/targets.py", "kept * class_weight[labels].to(dtype)", "kept.to(dtype)", "class weights"),
    ("core/targets.py", "torch.multinomial(counted, 1)", "torch.multinomial(torch.ones_like(counted), 1)", "samples follow soft labels"),
    ("core/targets.py", "return Target(self.labels, sample_weight)", "return self", "sample weights"),
    ("core/targets.py", "self.weight * (sample_weight if", "(sample_weight if", "sample weights beside class weights"),
    ("core/calibration.py", "1 / count", "0.0", "calibration: certain of nothing"),
    ("core/calibration.py", "float(target.weight.sum())", "len(labels)", "calibration: labels that do not count"),
    ("core/calibration.py", "if at_left <= at_right:", "if at_left > at_right:", "the search for the factor"),
    ("core/consistency.py", "each / temperature + label", "each * temperature + label", "settling: a temperature divides"),
    ("core/consistency.py", "if on_axes else log_label", "", "settling: on a simplex p(y) is not tempered"),
    ("core/consistency.py", "values.double() * weight", "values.double()", "settling: labels that do not count"),
    ("core/consistency.py", "0.5 * (before - beyond) / bend", "0.5 * (beyond - before) / bend", "settling: the parabola's foot"),
    ("core/priors.py", "self.settled *= math.sqrt", "self.settled /= math.sqrt", "settling: too sure means too narrow"),
    ("core/consistency.py", "(count * (1 + mistakes))", "(1 + mistakes)", "settling: one sample of which nothing is known"),
    ("core/consistency.py", "2 * math.log(settled) + log_temperature", "2 * math.log(settled) - log_temperature", "settling prior: which way leads back"),
    ("core/consistency.py", "+ prior).tolist()", ").tolist()", "settling prior: few samples move little"),
    ("core/consistency.py", "+ prior).tolist()", "+ count * prior).tolist()", "settling prior: many outweigh it"),
    ("core/consistency.py", "prior.settled * math.sqrt(grown)", "math.sqrt(grown)", "settling prior: around the start"),
    ("core/priors.py", "self._scale_factor if self.training else self._scale_factor * self._settled", "self._scale_factor * self._settled", "settling: in eval mode alone"),
    ("core/consistency.py", "if held.count < FEWEST:", "if False:", "settling: a handful changes nothing"),
    ("core/consistency.py", "prior.distance / before", "1.0", "settling: what means moved far apart ask for"),
    ("core/label_prior.py", "return slice(None) if bool(possible.all()) else possible.nonzero()[:, 0]", "return slice(None)", "settling: impossible classes"),
    ("core/anticipation.py", "class_prior.eval()", "pass", "anticipation: as predictions have it"),
    ("core/anticipation.py", "class_prior.scale_factor = found\n", "pass\n", "the width for an accuracy: priors stay"),
    ("core/axes.py", "self.root = root.to(self.length)", "self.root = root.to(self.length) if root.numel() else self.root", "covariance: sigma alone is sigma alone"),
    ("core/consistency.py", "class_prior.settle(shape.temperature,", "class_prior.settle(1.0,", "covariance: its sigma"),
    ("core/consistency.py", "prior.as_trained() if isinstance(prior, AxesPrior) else", "", "covariance: settling begins anew"),
    ("core/covariance.py", "(precision.diagonal() - 1)", "0", "covariance: lengths of the means when fitted"),
    ("core/covariance.py", "gains[best].std() / math.sqrt(len(y))", "-math.inf", "covariance: only where it predicts better"),
    ("core/covariance.py", "gains[best].std() / math.sqrt(len(y))", "0", "covariance: by more than its standard error"),
    ("core/covariance.py", "rest = left_out == fold, left_out != fold", "rest = left_out == fold, left_out >= 0", "covariance: parts left out"),
    ("core/covariance.py", "+ stiffness * (half + half.T).square().sum()", "", "covariance: close to one sigma a priori"),
    ("core/covariance.py", "return max(100, 10 * num_classes)", "return 20", "covariance: samples enough"),
    ("core/axes.py", "(precision.diagonal() - 1)", "0", "covariance: lengths of the means"),
    ("core/axes.py", "z = z @ root", "pass", "covariance: what is common to the classes"),
    ("core/axes.py", "volume - self._log_det if", "volume if", "covariance: volume"),
    ("core/axes.py", "return not self.training and self._has_root", "return self._has_root", "covariance: in eval mode alone"),
    ("core/axes.py", "(above + above.triu(1).T)", "above", "covariance: symmetric when loaded"),
    ("core/axes.py", "noise = torch.linalg.solve(self.root.to(noise), noise.T).T", "pass", "covariance: of samples"),
    ("core/linear.py", "precision @ bias - 0.5 * prior.length.double() ** 2 * (precision.diagonal() - 1)", "precision @ bias", "covariance: folded into a layer"),
    ("core/anticipation.py", "None if class_prior.root.numel() else class_prior.radius", "class_prior.radius", "covariance: anticipated by sampling"),
    ("core/consistency.py", "log_label / (prior.settled**2 * temperature)", "log_label / temperature", "settling: p(y) from the trained width on"),
    ("core/covariance.py", "log_label / prior.settled**2) / temperature", "log_label) / temperature", "covariance: p(y) from the trained width on"),
    ("core/axes.py", "(self._settled**2 - 1)", "self._settled**2", "settling: a trained width moves no means"),
    ("core/axes.py", "torch.linalg.solve(self.root @ self.root, move) if", "move if", "covariance: how its means move"),
    ("core/axes.py", "return z if self.training else z - self.origin", "return z - self.origin", "settling: means move in eval mode alone"),
    ("core/axes.py", "min=LEAST", "min=-math.inf", "settling: a class that never occurs"),
    ("core/axes.py", "self.origin.div_(factor)", "pass", "settling: means farther apart, the same decisions"),
    ("core/linear.py", "- (prior.length * prior.origin).double()", "", "settling: moved means in a layer"),
    ("core/axes.py", "return z / self.length", "return z", "axes: outputs in the prior's units"),
    ("core/axes.py", "(self.shrink**2 * self.length) * z[:, classes]", "self.length * z[:, classes]", "axes: calibration of log-odds"),
    ("core/axes.py", "torch.linalg.vecdot(z, z) + self.length.square()", "torch.linalg.vecdot(z, z)", "axes: a^2 in the density"),
    ("core/axes.py", "relative + rows(shift, classes)", "relative", "axes: p(y)"),
    ("core/axes.py", "self._factor * noise", "noise", "axes: sigma of samples"),
    ("core/axes.py", "math.log(self._factor) + 0.5 * LOG_2PI", "0.5 * LOG_2PI", "axes: volume of a calibrated density"),
    ("core/axes.py", "self.num_classes / (self.num_classes - 1)", "1.0", "axes: the separation is from the center"),
    ("core/axes.py", "standard = self.shrink * torch.sub(self._from_origin(z),", "standard = torch.sub(self._from_origin(z),", "axes: standardize divides by sigma"),
    ("core/axes.py", 'self.register_buffer("length", torch', 'self.register_buffer("length", persistent=False, tensor=torch', "axes: the length is saved"),
    ("core/linear.py", "head.to(weight).projection, weight, bias - log_label", "head.to(weight).projection, weight, bias", "axes: from_linear keeps p(y)"),
    ("core/linear.py", "load(head.to(weight).projection", "load(head.projection", "axes: from_linear keeps float64"),
    ("core/linear.py", "_as_layer(prior.shrink**2 * weight", "_as_layer(weight", "axes: a settled head as a layer"),
    ("core/recall.py", '"beta": head.named_beta', '"beta": beta', "beta: of a rebuilt head"),
    ("core/recall.py", '"samples": head.samples', '"samples": None', "beta: samples of a rebuilt head"),
    ("core/presets.py", "min(1.0, (ENOUGH / per_class) ** 2)", "((ENOUGH / per_class) ** 2)", "beta: few samples do not raise it"),
    ("core/presets.py", "min(STRONGEST, SHARED_TWICE / latent_dim**2)", "SHARED_TWICE / latent_dim**2", "beta: a half at most"),
    ("core/consistency.py", "max(likeliest, min(trained, ", "max(likeliest, min(0.0, ", "settling: surer than trained, not than before"),
    ("core/consistency.py", "max(likeliest, min(trained, ", "max(likeliest, max(trained, ", "settling: surer where it is right"),
    ("core/consistency.py", "(higher - accuracy) / (higher - lower)", "0", "settling: as sure as right, between the steps"),
    ("core/presets.py", "min(1.0, (ENOUGH / per_class) ** 2)", "1.0", "beta: gives way to data"),
    ("core/presets.py", "(ENOUGH / per_class) ** 2", "(ENOUGH / per_class)", "beta: by the square of the samples"),
    ("core/covariance.py", "(closeness or 1.0) * max(100.0", "max(100.0", "covariance: how close to a round one"),
    ("core/presets.py", 'AUTO if asked[0] == "pull" else PER_DIMENSION', 'default["beta"]', "beta: the pull's alone"),
    ("core/head.py", "self.samples / self.num_classes", "self.samples", "beta: samples a class"),
    ("core/head.py", "self._beta if named else now", "self._beta", "beta: the objective's own"),
    ("core/objectives.py", "posterior_and_prior_terms(head, z, target, pull=True)", "posterior_and_prior_terms(head, z, target, pull=False)", "pull reaches phi"),
    ("core/objectives.py", " + spread_term(head, around[1], target)", "", "bottleneck: the width of q(z|x)"),
    ("core/objectives.py", "prior_term(head, around[0], target)", "prior_term(head, z, target)", "bottleneck: the mean and not a draw"),
    ("core/objectives.py", "torch.log(scale) + 0.5 * (1 + LOG_2PI)", "torch.log(scale)", "bottleneck: the entropy of q(z|x)"),
    ("core/objectives.py", "average(0.5 * (scale * torch.exp(", "average((scale * torch.exp(", "bottleneck: the trace, hard labels"),
    ("core/objectives.py", "(0.5 * spread - own", "(spread - own", "bottleneck: the trace, soft labels"),
    ("core/objectives.py", "torch.exp(-2 * head.class_prior.log_sigma())", "torch.exp(-head.class_prior.log_sigma())", "bottleneck: precision, soft labels"),
    ("core/consistency.py", "torch.ones_like(outputs[:, 0]) if weight is None else weight", "weight", "settling: what batches ignore"),
    ("core/consistency.py", "return HeldOut.of([_look_at(head, *part, shape) for part in parts])", "return _look_at(head, *next(parts), shape)", "settling: every part"),
    ("core/linear.py", "return prior.length * z + log_label", "return prior.length * z", "the energy has p(y)"),
    ("core/recall.py", "AUTO if head.settles else prior.separation", "prior.separation", "settling: a rebuilt head settles too"),
    ("classifier.py", "found, parent._modules[after] = module, nn.Identity()", "found = module", "a softmax after the layer is dropped"),
]  # fmt: skip


def survives(file: str, old: str, new: str) -> bool:
    """Whether the tests pass on a copy of the package with every `old` in one file replaced."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src" / "varclass", Path(folder) / "varclass")
        path = Path(folder) / "varclass" / file
        text = path.read_text()
        if old not in text:
            raise SystemExit(f"{file} no longer contains {old!r}: bring the mutant up to date")
        path.write_text(text.replace(old, new))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", f"not ({SLOW})", *SUSPECTS]
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"the tests did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.returncode == 0


def main() -> None:
    """Try every mutant; exit with an error if one survives."""
    words = " ".join(sys.argv[1:])
    chosen = [mutant for mutant in MUTANTS if words in mutant[3]]
    survivors = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # a thread per test run, each in a process of its own
        fates = pool.map(lambda mutant: survives(*mutant[:3]), chosen)
        for number, ((file, _, _, what), alive) in enumerate(zip(chosen, fates, strict=True), start=1):
            survivors += [what] * alive
            print(f"[{number}/{len(chosen)}] {file}: {what}: {'SURVIVED' if alive else 'killed'}", flush=True)
    print(f"{len(chosen) - len(survivors)} killed, {len(survivors)} survived")
    if survivors:
        raise SystemExit(f"survivors: {', '.join(survivors)}")


if __name__ == "__main__":
    main()
