# Installs the build at BUILD below itself, then configures, builds and runs the project at SOURCE against it.
set(folder ${BUILD}/consumer)
file(REMOVE_RECURSE ${folder})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${folder}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_BUILD_TYPE=Release -Dasdbench_DIR=${folder}/prefix/${LIBDIR}/cmake/asdbench)
run(${CMAKE_COMMAND} --build ${folder}/build)
run(${folder}/build/consumer)
message("${output}")
run(${folder}/prefix/bin/asdbench --version)
message("${output}")
