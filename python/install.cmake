# The package as Debian has it (component "python"): Python files and the extension in dist-packages, the libraries and the
# command from the other components.
set(kiln_dist_packages lib/python3/dist-packages)
list(TRANSFORM python_files PREPEND kiln/ OUTPUT_VARIABLE files)
install(FILES ${files} DESTINATION ${kiln_dist_packages}/kiln COMPONENT python)
install(TARGETS kiln_python_core LIBRARY DESTINATION ${kiln_dist_packages}/kiln COMPONENT python)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/installed)
file(CREATE_LINK ../../../../../${CMAKE_INSTALL_BINDIR}/kiln ${CMAKE_CURRENT_BINARY_DIR}/installed/kiln SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed/kiln DESTINATION ${kiln_dist_packages}/kiln/bin COMPONENT python)

set(about ${CMAKE_CURRENT_BINARY_DIR}/kiln-${CMAKE_PROJECT_VERSION}.dist-info)
file(WRITE ${about}/METADATA "Metadata-Version: 2.4
Name: kiln
Version: ${CMAKE_PROJECT_VERSION}
Summary: Compiles a neural network into one portable file, and runs it on CPUs and GPUs
License-Expression: Apache-2.0 WITH LLVM-exception
Requires-Python: >=3.10
Requires-Dist: numpy
")
file(WRITE ${about}/entry_points.txt "[torch_dynamo_backends]\nkiln = kiln.torch_backend:kiln\n")
file(WRITE ${about}/INSTALLER "debian\n")
install(DIRECTORY ${about} DESTINATION ${kiln_dist_packages} COMPONENT python)
