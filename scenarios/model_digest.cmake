# Writes OUTPUT, which defines model_digest() as the digest of the sources in FOLDER's sim/ and models/.
file(GLOB_RECURSE sources RELATIVE ${FOLDER}
  ${FOLDER}/sim/*.h ${FOLDER}/sim/*.cpp ${FOLDER}/models/*.h ${FOLDER}/models/*.cpp)
list(SORT sources)
set(digests "")
foreach(source IN LISTS sources)
  file(SHA256 ${FOLDER}/${source} digest)
  string(APPEND digests "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT} "#include \"scenarios/version.h\"

namespace vcpusim {
std::string_view model_digest() { return \"${digest}\"; }
}  // namespace vcpusim
")
