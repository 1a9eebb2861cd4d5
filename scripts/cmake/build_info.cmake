# Writes the commit and whether the tree has changes into a header, only when they differ from what it holds.
# Run at build time: a configure-time commit would be stale after the next one.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
  set(dirty false)
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(changes STREQUAL "")
    set(dirty false)
  else()
    set(dirty true)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"#define ASDBENCH_COMMIT \"${commit}\"\n#define ASDBENCH_DIRTY ${dirty}\n" @ONLY)
