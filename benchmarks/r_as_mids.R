# R's mice reads the long file of `psmvae impute --multiple` and pools a linear model:
# Rscript benchmarks/r_as_mids.R all.csv "bmi ~ age + chl"
# The table is that of `psmvae analyse all.csv --formula "bmi ~ age + chl"`.
suppressMessages(library(mice))
arguments <- commandArgs(trailingOnly = TRUE)
# an empty cell of a text column is missing, not an empty text
long <- read.csv(arguments[1], na.strings = "", stringsAsFactors = TRUE)
imputed <- as.mids(long)
stopifnot(is.mids(imputed), imputed$m == max(long$.imp))
fits <- with(imputed, lm(as.formula(arguments[2])))
print(summary(pool(fits), "all", conf.int = TRUE))
