# Compiles the kernels of this folder into llama.cpp's CPU library. Included right after llama.cpp's
# project(); what follows waits until the library's target is there.
set(UITWEG_KERNELS ${CMAKE_CURRENT_LIST_DIR})
function(uitweg_add_kernels)
  # What the prompts that are kept on disk were computed with: see server/engine/kept.py.
  set(digest "")
  foreach(name attention.cpp matmul.cpp register.cpp attention.h formats.h matmul.h rows.h simd.h)
    file(SHA256 ${UITWEG_KERNELS}/${name} one)
    string(SHA256 digest "${digest}${one}")
  endforeach()
  foreach(name attention matmul register)
    set(file ${UITWEG_KERNELS}/${name}.cpp)
    target_sources(ggml-cpu PRIVATE ${file})
    # A product and a sum are rounded together only where that is written.
    set_source_files_properties(
      ${file} TARGET_DIRECTORY ggml-cpu
      PROPERTIES COMPILE_OPTIONS -ffp-contract=off COMPILE_DEFINITIONS UITWEG_DIGEST="${digest}")
  endforeach()
  # Where llama.cpp lists its kinds of buffers, ours takes the place of its repacked one.
  get_target_property(folder ggml-cpu SOURCE_DIR)
  set_source_files_properties(
    ${folder}/ggml-cpu/ggml-cpu.cpp TARGET_DIRECTORY ggml-cpu
    PROPERTIES COMPILE_DEFINITIONS ggml_backend_cpu_repack_buffer_type=uitweg_buffer_type)
endfunction()
cmake_language(DEFER CALL uitweg_add_kernels)
