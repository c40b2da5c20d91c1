"""What a person has to say about the results; everything else on the page is computed."""

from __future__ import annotations

__all__ = ["MISPRINTS", "WHY"]

# Figures of the paper that cannot all be right.
MISPRINTS = (
    "DLGM, letter, 20 %: the MCAR cell repeats the MNAR cell, .0947 ± .0172.",
    "MICE sample, credit, 80 % MNAR: .1664 ± .0128 is also what stands for letter, 20 % MNAR.",
    "HIVAE, credit, 80 % MCAR: a standard deviation of .11 beside at most .0036 in the rows "
    "around it; .0011 is likely.",
    "PSMVAE w/o M, adult, 20 % MCAR: a standard deviation of 0.031 in another notation than its "
    "neighbours; .0031 is likely.",
    "MICE, test accuracy, MNAR: the cells of 20 % and of 80 % are both .9578 ± .0096.",
)

# By method: why its figures may differ from the paper's.
WHY = {
    "psmvae-a": "The importance weights here hold p(x_obs|z,r) and p(m|x,r), which the paper's "
    "formula leaves out; with K = 10,000 that changes what is averaged.",
    "psmvae-b-10000": "The importance weights here hold p(x_obs|z,r) and p(m|z,r), which the "
    "paper's formula leaves out; sets are added up rather than drawn.",
    "gain": "The paper ran its authors' program. Adversarial training is unstable at 80 % "
    "missing: the paper's own figure on breast is four times that of the mean.",
    "miwae": "The paper ran its authors' program, with defaults of its own.",
    "miwae-10000": "The paper ran its authors' program, with defaults of its own.",
    "not-miwae": "The paper ran its authors' program, with defaults of its own.",
    "missforest": "Ten trees are few: the error depends on how they were drawn.",
}
