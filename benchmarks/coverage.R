# Impute the tables of a folder by R's mice: Rscript coverage.R FOLDER METHOD
# FOLDER/*.csv are incomplete tables; FOLDER/METHOD/*.csv get 20 completed tables each (.imp, .id).
suppressMessages(library(mice))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
method <- arguments[2]
dir.create(file.path(folder, method), showWarnings = FALSE)
for (path in list.files(folder, pattern = "[.]csv$", full.names = TRUE)) {
  out <- file.path(folder, method, basename(path))
  if (file.exists(out)) next
  data <- read.csv(path)
  if ("binary" %in% names(data)) {
    data$binary <- factor(data$binary)
    data$ordinal <- factor(data$ordinal, ordered = TRUE)
  }
  imputed <- mice(data, m = 20, maxit = 5, printFlag = FALSE, seed = 1,
                  defaultMethod = c(method, "logreg", "polyreg", "polr"))
  write.csv(complete(imputed, "long"), out, row.names = FALSE)
}
