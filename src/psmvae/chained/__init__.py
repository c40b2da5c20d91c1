"""Proper multiple imputation: chained Bayesian regressions, with a learned prediction beside them.

As in R's mice, each column is regressed on the others in rounds, and in every round the parameters
are drawn from their posterior before the missing cells are. Two things are added. A regression has
nonlinear terms, whose prior variance is drawn too, so that linear data get linear regressions. And
the prediction of a trained model enters as far as it predicts cells that the model was not trained
on.
"""
