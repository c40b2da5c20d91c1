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
result <- list(mice = as.character(packageVersion("mice")), lm = linear, glm = logit, coxph = one(cox, part))
cat(toJSON(result, digits = NA, auto_unbox = TRUE, na = "null"), "\n")
