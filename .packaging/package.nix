{
  lib,
  stdenv,
  fetchurl,
  pkg-config,
  libarchive,
  lz4,
  xxHash,
  jansson,
  libsodium,
  openblas,
  bats,
  file,
  openssl,
  perl,
  python3,
  xz,
}:

stdenv.mkDerivation (finalAttrs: {
  pname = "ace-shards";
  version = "@VERSION@";

  src = fetchurl {
    url = "@URL@/ace-${finalAttrs.version}.tar.gz";
    hash = "sha256-@SRI@";
  };

  strictDeps = true;
  enableParallelBuilding = true;

  nativeBuildInputs = [ pkg-config ];
  buildInputs = [
    libarchive
    lz4
    xxHash
    jansson
    libsodium
  ];

  makeFlags = [
    "PREFIX=$(out)"
    "LIB=lib"
    "DEPS=no"
  ];

  postPatch = ''
    patchShebangs .ci .packaging tests
  '';

  # a build has neither network nor root, which some tests need: of tests/cli run one file
  doCheck = true;
  nativeCheckInputs = [
    bats
    file
    openssl
    perl
    python3
    xz
  ];
  checkInputs = [ openblas ];
  checkFlags = [ "CLI=tests/cli/golden.bats" ];

  doInstallCheck = true;
  installCheckPhase = ''
    PATH="$out/bin:$PATH" .packaging/own-test
  '';

  meta = {
    description = "Gradients made small and sent through Unix pipes";
    homepage = "https://arxiv.org/abs/2512.18127";
    license = lib.licenses.isc;
    platforms = lib.platforms.linux;
    mainProgram = "ace";
    maintainers = [ ];
  };
})
