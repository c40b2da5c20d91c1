# Fits of R's mice pooled by R: the reference values of tests/multiple/r_pool.json.
# Needs R with mice, mitml, survival and jsonlite (Debian: r-cran-mice r-cran-mitml r-cran-jsonlite).
# Rscript benchmarks/r_pool.R > tests/multiple/r_pool.json
suppressMessages({library(mice); library(mitml); library(survival); library(jsonlite)})

one <- function(full, null) {
  pooled <- pool(full)$pooled
  columns <- c("estimate", "ubar", "b", "t", "df", "riv", "lambda", "fmi", "dfcom")
  test <- function(...) as.list(testModels(full$analyses, null$analyses, ...)$test[1, ])
  list(
    terms = as.character(pooled$term),
    estimates = lapply(full$analyses, function(f) unname(coef(f))),
    covariances = lapply(full$analyses, function(f) unname(vcov(f))),
    pooled = as.list(pooled[columns]),
    D1 = test(method = "D1"),
    D1_dfcom = test(method = "D1", df.com = pooled$dfcom[1]),
    D2 = test(method = "D2")
  )
}

small <- mice(nhanes2, m = 5, seed = 1, printFlag = FALSE)
linear <- one(with(small, lm(chl ~ age + bmi)), with(small, lm(chl ~ 1)))
logit <- one(
  with(small, glm(hyp == "yes" ~ bmi, family = binomial)),
  with(small, glm(hyp == "yes" ~ 1, family = binomial))
)
set.seed(2)
incomplete <- lung[c("time", "status", "age", "ph.ecog", "meal.cal", "wt.loss")]
survived <- mice(incomplete, m = 5, seed = 2, printFlag = FALSE)
cox <- with(survived, coxph(Surv(time, status) ~ age + ph.ecog + wt.loss))
# with() names the model by its call; the null model of coxph has no coefficients
part <- with(survived, coxph(Surv(time, status) ~ age))

# Simulated tables, imputed here and written out: statsmodels fits the same models to them.
simulated <- function(n = 80) {
  x1 <- rnorm(n)
  g <- factor(sample(c("a", "b", "c"), n, TRUE))
  x2 <- .5 * x1 + rnorm(n)
  y <- 1 + .3 * x1 + .2 * x2 + .3 * (g == "b") + rnorm(n)
  z <- rbinom(n, 1, plogis(.5 * x1 + .3 * x2))
  count <- rpois(n, exp(.5 + .2 * x1 + .2 * x2))
  table <- data.frame(y, x1, x2, g, z, count)
  for (name in c("y", "x1", "x2")) table[runif(n) < .2, name] <- NA
  table
}

# D3 of Meng and Rubin (1992). mitml has it for lm but not for glm, and mice::D3 estimates the
# intercept again where it should be fixed at its pooled value.
d3_of_glm <- function(full, null, density) {
  coefs <- function(fits) do.call(cbind, lapply(fits, coef))
  loglik <- function(fits, b) {
    mean(sapply(seq_along(fits), function(l) {
      f <- fits[[l]]
      sum(density(f$y, f$family$linkinv(model.matrix(f) %*% b[, l]), log = TRUE))
    }))
  }
  pooled <- function(b) matrix(rowMeans(b), nrow(b), ncol(b))
  b1 <- coefs(full)
  b0 <- coefs(null)
  m <- ncol(b1)
  k <- nrow(b1) - nrow(b0)
  own <- 2 * (loglik(full, b1) - loglik(null, b0))
  at_pooled <- 2 * (loglik(full, pooled(b1)) - loglik(null, pooled(b0)))
  r <- (m + 1) / (k * (m - 1)) * (own - at_pooled)
  value <- at_pooled / (k * (1 + r))
  t <- k * (m - 1)
  stopifnot(t > 4, r > 0)
  v <- 4 + (t - 4) * (1 + (1 - 2 / t) / r)^2
  list(F.value = value, df1 = k, df2 = v, "P(>F)" = pf(value, k, v, lower.tail = FALSE), RIV = r)
}

set.seed(3)
imputed <- mice(simulated(), m = 5, seed = 3, printFlag = FALSE)
strict <- glm.control(epsilon = 1e-14, maxit = 100)
full <- with(imputed, lm(y ~ x1 + x2 + g))
null <- with(imputed, lm(y ~ x1))
ols <- one(full, null)
ols$D3 <- as.list(testModels(full$analyses, null$analyses, method = "D3")$test[1, ])
full <- with(imputed, glm(z ~ x1 + x2 + y, family = binomial, control = strict))
null <- with(imputed, glm(z ~ x1, family = binomial, control = strict))
binomial_glm <- one(full, null)
bernoulli <- function(y, p, log) dbinom(y, 1, p, log = log)
binomial_glm$D3 <- d3_of_glm(full$analyses, null$analyses, bernoulli)
full <- with(imputed, glm(count ~ x1 + x2 + y, family = poisson, control = strict))
null <- with(imputed, glm(count ~ 1, family = poisson, control = strict))
poisson_glm <- one(full, null)
poisson_glm$D3 <- d3_of_glm(full$analyses, null$analyses, dpois)
long <- complete(imputed, "long", include = TRUE)
tables <- list(data = long, ols = ols, binomial = binomial_glm, poisson = poisson_glm)

result <- list(
  mice = as.character(packageVersion("mice")), mitml = as.character(packageVersion("mitml")),
  lm = linear, glm = logit, coxph = one(cox, part), statsmodels = tables
)
cat(toJSON(result, digits = NA, auto_unbox = TRUE, na = "null", dataframe = "columns"), "\n")
