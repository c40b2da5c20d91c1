# Imputations by R's mice of its tables boys, nhanes2 and selfreport, and of a stacked table, pooled.
# Needs R with mice and jsonlite. Run by benchmarks/mice_r.py:
# Rscript benchmarks/mice_r.R FOLDER SEEDS
# reads FOLDER/stacked.csv, and writes the other tables and r.json to FOLDER.
suppressMessages({library(mice); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
seeds <- seq_len(as.integer(arguments[2])) - 1
m <- 20
maxit <- 10

tables <- list(
  nhanes2 = nhanes2,
  boys = boys[names(boys) != "reg"],
  selfreport = selfreport[c("src", "age", "sex", "hm", "wm", "hr", "wr")],
  stacked = read.csv(file.path(folder, "stacked.csv"))
)
analyses <- list(
  nhanes2 = list(
    mean = function(d) lm(bmi ~ 1, d), regression = function(d) lm(chl ~ bmi + hyp, d)
  ),
  boys = list(mean = function(d) lm(tv ~ 1, d), regression = function(d) lm(tv ~ age + hgt, d)),
  selfreport = list(mean = function(d) lm(wm ~ 1, d), regression = function(d) lm(wm ~ hm + age, d)),
  stacked = list(mean = function(d) lm(y ~ 1, d), regression = function(d) lm(y ~ x, d))
)

# The method of each incomplete column: numbers by `numeric`, levels by mice's defaults. No table
# has an incomplete column of unordered levels (polyreg).
methods <- function(table, numeric) {
  make.method(table, defaultMethod = c(numeric, "logreg", "polyreg", "polr"))
}

records <- list()
for (name in names(tables)) {
  table <- tables[[name]]
  write.csv(table, file.path(folder, paste0(name, ".csv")), row.names = FALSE, na = "")
  for (numeric in c("norm", "pmm")) for (seed in seeds) {
    imputed <- mice(
      table, m = m, maxit = maxit, method = methods(table, numeric), seed = seed + 1,
      printFlag = FALSE
    )
    completed <- complete(imputed, "all")
    for (analysis in names(analyses[[name]])) {
      pooled <- pool(as.mira(lapply(completed, analyses[[name]][[analysis]])))$pooled
      for (k in seq_len(nrow(pooled))) records[[length(records) + 1]] <- list(
        table = name, method = numeric, seed = seed, analysis = analysis,
        term = as.character(pooled$term[k]), estimate = pooled$estimate[k],
        std_error = sqrt(pooled$t[k]), b = pooled$b[k], fmi = pooled$fmi[k]
      )
    }
  }
}
version <- paste(R.version$major, R.version$minor, sep = ".")
write_json(
  list(R = version, mice = as.character(packageVersion("mice")), m = m, records = records),
  file.path(folder, "r.json"), auto_unbox = TRUE, digits = 8
)
