# What `cmake --install` lays down: the program, the scenario library, and the three inner layers as a package for
# find_package(vcpusim).
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/vcpusim)

install(TARGETS vcpusim_sim vcpusim_models vcpusim_scenarios EXPORT vcpusimTargets)
install(TARGETS vcpusim)
install(DIRECTORY sim models scenarios DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vcpusim FILES_MATCHING PATTERN *.h)
install(DIRECTORY scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/vcpusim FILES_MATCHING PATTERN *.json)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT vcpusimTargets NAMESPACE vcpusim:: DESTINATION ${package})
configure_package_config_file(tools/cmake/vcpusimConfig.cmake.in vcpusimConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(vcpusimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vcpusimConfig.cmake ${PROJECT_BINARY_DIR}/vcpusimConfigVersion.cmake
  DESTINATION ${package})
