# Helpers: one OBJECT library per folder, one test program per folder, generated tables of factories.

# All folder libraries that `roots` need, themselves included. OBJECT files do not travel through other OBJECT
# libraries, so a program has to name every one of them.
function(asdbench_closure out)
  set(todo ${ARGN})
  set(done)
  while(todo)
    list(POP_FRONT todo name)
    if(NOT name IN_LIST done)
      list(APPEND done ${name})
      get_target_property(needs asdbench_${name} ASDBENCH_NEEDS)
      if(needs)
        list(APPEND todo ${needs})
      endif()
    endif()
  endwhile()
  list(TRANSFORM done PREPEND asdbench_)
  set(${out} ${done} PARENT_SCOPE)
endfunction()

# asdbench_add_library(name SOURCES ... [NEEDS folder ...] [PRIVATE third-party ...])
# NEEDS names folder libraries without their prefix; PRIVATE names imported targets.
function(asdbench_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;NEEDS;PRIVATE" ${ARGN})
  add_library(asdbench_${name} OBJECT ${arg_SOURCES})
  set_target_properties(asdbench_${name} PROPERTIES ASDBENCH_NEEDS "${arg_NEEDS}")
  target_link_libraries(asdbench_${name}
    PUBLIC asdbench_settings ${ASDBENCH_COMMON_PACKAGES}
    PRIVATE $<BUILD_INTERFACE:asdbench_warnings> ${arg_PRIVATE})
  foreach(need IN LISTS arg_NEEDS)
    target_link_libraries(asdbench_${name} PUBLIC asdbench_${need})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ASDBENCH_LIBRARIES ${name})
  set_property(GLOBAL APPEND PROPERTY ASDBENCH_THIRD_PARTY ${arg_PRIVATE})
endfunction()

# asdbench_add_program(name SOURCES ... NEEDS folder ... [PRIVATE third-party ...])
function(asdbench_add_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;NEEDS;PRIVATE" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  asdbench_closure(libraries ${arg_NEEDS})
  target_link_libraries(${name} PRIVATE asdbench_settings asdbench_warnings ${libraries} ${arg_PRIVATE})
endfunction()

# asdbench_add_tests(name SOURCES ... [NEEDS folder ...] [PRIVATE ...] [LABELS ...] [TIMEOUT seconds])
# One GoogleTest program a folder, run in the root folder; data lie under <folder>/tests/data: ASDBENCH_TEST_DATA.
# A second program of the same folder (slow, gpu) takes another name.
function(asdbench_add_tests name)
  if(NOT ASDBENCH_DEVELOPER OR ASDBENCH_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;NEEDS;PRIVATE;LABELS" ${ARGN})
  if(NOT arg_NEEDS)
    set(arg_NEEDS ${name})
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  asdbench_add_program(${name}_tests SOURCES ${arg_SOURCES} NEEDS ${arg_NEEDS}
    PRIVATE GTest::gtest_main GTest::gmock ${arg_PRIVATE})
  # Relative, so that the compiler cache hits in another clone: tests run in the root folder of the sources.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE folder)
  target_compile_definitions(${name}_tests PRIVATE
    ASDBENCH_TEST_DATA="${folder}/tests/data" ASDBENCH_SOURCE_DIR=".")
  include(GoogleTest)
  gtest_discover_tests(${name}_tests TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# asdbench_add_fuzzer(name SOURCE file CORPUS folder NEEDS folder ... [PRIVATE third-party ...])
# The source defines LLVMFuzzerTestOneInput. Built with a plain main that replays the corpus as a unit test; when
# ASDBENCH_FUZZ is on, with libFuzzer and a test that fuzzes for ASDBENCH_FUZZ_SECONDS from the corpus on.
function(asdbench_add_fuzzer name)
  if(NOT ASDBENCH_DEVELOPER)
    return()
  endif()
  cmake_parse_arguments(arg "" "SOURCE;CORPUS" "NEEDS;PRIVATE" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS})
  if(ASDBENCH_FUZZ)
    asdbench_add_program(${name}_fuzzer SOURCES ${arg_SOURCE} NEEDS ${arg_NEEDS} PRIVATE ${arg_PRIVATE})
    target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
    # libFuzzer writes what it finds into the first folder: never into the seeds.
    set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}_found)
    file(MAKE_DIRECTORY ${found})
    add_test(NAME ${name}.fuzz COMMAND ${name}_fuzzer ${found} ${corpus} -max_total_time=${ASDBENCH_FUZZ_SECONDS}
      -timeout=10 -print_final_stats=1 -artifact_prefix=${found}/)
    math(EXPR limit "${ASDBENCH_FUZZ_SECONDS} + 120")
    set_tests_properties(${name}.fuzz PROPERTIES LABELS fuzz TIMEOUT ${limit})
  else()
    asdbench_add_program(${name}_fuzzer SOURCES ${arg_SOURCE} ${CMAKE_SOURCE_DIR}/scripts/cmake/replay_main.cpp
      NEEDS ${arg_NEEDS} PRIVATE ${arg_PRIVATE})
    add_test(NAME ${name}.corpus_replay COMMAND ${name}_fuzzer ${corpus})
    set_tests_properties(${name}.corpus_replay PROPERTIES LABELS unit TIMEOUT 120)
  endif()
endfunction()

# asdbench_add_benchmark(name SOURCES ... NEEDS folder ...): a Google Benchmark program, never run as a test.
function(asdbench_add_benchmark name)
  if(NOT ASDBENCH_DEVELOPER OR ASDBENCH_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;NEEDS;PRIVATE" ${ARGN})
  asdbench_add_program(${name} SOURCES ${arg_SOURCES} NEEDS ${arg_NEEDS}
    PRIVATE benchmark::benchmark_main ${arg_PRIVATE})
endfunction()

# asdbench_factories(out GLOB pattern HEADER file FACTORY type TABLE function)
# Writes a source that lists make_<stem> of every file the pattern finds. A file without its factory is a link error;
# static initialisers are not used, since a static library drops them silently.
function(asdbench_factories out)
  cmake_parse_arguments(arg "" "GLOB;HEADER;FACTORY;TABLE" "" ${ARGN})
  file(GLOB plugins CONFIGURE_DEPENDS ${arg_GLOB})
  list(SORT plugins)
  set(declarations)
  set(rows)
  foreach(file IN LISTS plugins)
    cmake_path(GET file STEM stem)
    string(APPEND declarations "${arg_FACTORY}::Make make_${stem};\n")
    string(APPEND rows "      {\"${stem}\", &make_${stem}},\n")
  endforeach()
  string(CONCAT body "// Generated from ${arg_GLOB}.\n" "#include \"${arg_HEADER}\"\n\n" "namespace asdbench {\n\n"
    "${declarations}\n" "const std::vector<${arg_FACTORY}>& ${arg_TABLE}() {\n"
    "  static const std::vector<${arg_FACTORY}> table = {\n${rows}  };\n  return table;\n}\n\n"
    "}  // namespace asdbench\n")
  cmake_path(RELATIVE_PATH CMAKE_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
  string(REPLACE "${CMAKE_SOURCE_DIR}/" "" body "${body}")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${arg_TABLE}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "${body}" @ONLY)
  set(${out} ${plugins} ${generated} PARENT_SCOPE)
endfunction()
