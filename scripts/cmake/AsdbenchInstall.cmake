# One installed static library of all folders, the headers, and a package that find_package(asdbench) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ASDBENCH_LIBRARIES)
get_property(third_party GLOBAL PROPERTY ASDBENCH_THIRD_PARTY)
list(REMOVE_DUPLICATES third_party)
set(objects)
foreach(library IN LISTS libraries)
  list(APPEND objects $<TARGET_OBJECTS:asdbench_${library}>)
endforeach()

add_library(asdbench_library STATIC ${objects})
add_library(asdbench::asdbench ALIAS asdbench_library)
set_target_properties(asdbench_library PROPERTIES OUTPUT_NAME asdbench EXPORT_NAME asdbench LINKER_LANGUAGE CXX)
# What our headers show is public; the rest has to be linked all the same, since the archive is static.
target_link_libraries(asdbench_library
  PUBLIC asdbench_settings ${ASDBENCH_COMMON_PACKAGES} PRIVATE ${third_party})
set_target_properties(asdbench_settings PROPERTIES EXPORT_NAME settings)

# Headers that show a third-party library are named *_internal.h and stay here, like those of the program.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/eval/*.h ${CMAKE_SOURCE_DIR}/results/*.h ${CMAKE_SOURCE_DIR}/runners/*.h
  ${CMAKE_SOURCE_DIR}/tasks/*.h)
list(FILTER headers EXCLUDE REGEX "_internal\\.h$|/(tests|fuzz|bench)/|/eval/cli/")
target_sources(asdbench_library PUBLIC
  FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/asdbench)
install(TARGETS asdbench_library asdbench_settings EXPORT asdbench
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/asdbench)
install(EXPORT asdbench NAMESPACE asdbench:: DESTINATION ${package_folder} FILE asdbenchTargets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/asdbenchConfig.cmake.in
  ${CMAKE_BINARY_DIR}/package/asdbenchConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/asdbenchConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/package/asdbenchConfig.cmake ${CMAKE_BINARY_DIR}/package/asdbenchConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindTorchWheel.cmake
  DESTINATION ${package_folder})

install(TARGETS asdbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tasks/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/asdbench)
# The drafters made by runners/train, under the name that the program looks for.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/runners/drafters/shipped/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/asdbench/drafters OPTIONAL)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/asdbench)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Installs into the build folder, then builds and runs a project that knows the installed package only. A sanitized
# build is not for installing.
if(ASDBENCH_DEVELOPER AND NOT ASDBENCH_SANITIZE AND NOT ASDBENCH_FUZZ)
  add_test(NAME install.consumer COMMAND ${CMAKE_COMMAND}
    -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}/consumer -DGENERATOR=${CMAKE_GENERATOR}
    -DCOMPILER=${CMAKE_CXX_COMPILER} -DLIBDIR=${CMAKE_INSTALL_LIBDIR} -P ${CMAKE_CURRENT_LIST_DIR}/consumer/test.cmake)
  set_tests_properties(install.consumer PROPERTIES LABELS e2e TIMEOUT 600)
endif()
