# Compiles the kernels of this folder into llama.cpp's CPU library. Included right after llama.cpp's
# project(); what follows waits until the library's target is there.
set(UITWEG_KERNELS ${CMAKE_CURRENT_LIST_DIR})
function(uitweg_add_kernels)
  # Prompts that are kept on disk are of use only to what computed them: see server/engine/kept.py.
  file(GLOB files ${UITWEG_KERNELS}/*.cmake ${UITWEG_KERNELS}/*.cpp ${UITWEG_KERNELS}/*.h)
  set(digests "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(file ${files})
    file(SHA256 ${file} digest)
    string(APPEND digests ${digest})
  endforeach()
  string(SHA256 digest "${digests}")
  file(GLOB sources ${UITWEG_KERNELS}/*.cpp)
  target_sources(ggml-cpu PRIVATE ${sources})
  # A product and a sum are rounded together only where that is written.
  set_source_files_properties(
    ${sources} TARGET_DIRECTORY ggml-cpu
    PROPERTIES COMPILE_OPTIONS -ffp-contract=off COMPILE_DEFINITIONS UITWEG_DIGEST="${digest}")
  # Where llama.cpp lists its kinds of buffers, ours takes the place of its repacked one.
  get_target_property(folder ggml-cpu SOURCE_DIR)
  set_source_files_properties(
    ${folder}/ggml-cpu/ggml-cpu.cpp TARGET_DIRECTORY ggml-cpu
    PROPERTIES COMPILE_DEFINITIONS ggml_backend_cpu_repack_buffer_type=uitweg_buffer_type)
endfunction()
cmake_language(DEFER CALL uitweg_add_kernels)
