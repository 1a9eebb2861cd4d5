# One installed static library of all folders, the headers, and a package that find_package(asdbench) reads.
