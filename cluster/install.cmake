# SPDX-License-Identifier: BSD-3-Clause
# install.cmake - installs the scripts of the harness, and its page, as one command. In the tree they are cluster/chaos,
# cluster/up and so on; installed, they are quorlock-chaos, quorlock-chaos up and so on, and their texts use these names.
# Needs SOURCE and BINARY, the folders of the tree and of the build, and the installed places BINDIR, HOME, EXAMPLES and
# MANDIR, without DESTDIR.

# install_as_command FILE FOLDER TO: installs a file of the source in that folder of the system.
function(install_as_command file folder to)
  file(READ ${SOURCE}/${file} text)
  string(REPLACE "cluster/examples" "${EXAMPLES}" text "${text}")
  string(REPLACE "cluster/chaos" "quorlock-chaos" text "${text}")
  string(REGEX REPLACE "cluster/([$]|check|down|hurt|status|up|with)" "quorlock-chaos \\1" text "${text}")
  # The place of the programs.
  string(REPLACE "\"build\" / \"bin\"" "\"bin\"" text "${text}")
  string(REPLACE "default build/bin" "default ${HOME}/bin" text "${text}")
  string(REPLACE ", else build/bin/quorlock" "" text "${text}")
  string(REPLACE "/../build/bin/" "/../bin/" text "${text}")
  string(REPLACE "run scripts/setup" "install it" text "${text}")
  if(file MATCHES "[.]7$")
    string(REPLACE "quorlock-chaos" "quorlock\\-chaos" text "${text}")
  endif()
  get_filename_component(name ${file} NAME)
  set(made ${BINARY}/installed/${to}/${name})
  file(WRITE ${made} "${text}")
  set(permissions OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  # Files that begin with #! are programs.
  if(text MATCHES "^#!")
    list(APPEND permissions OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
  endif()
  file(INSTALL ${made} DESTINATION ${folder} PERMISSIONS ${permissions})
endfunction()

# link_to TARGET NAME: makes a relative link, because DESTDIR moves both.
function(link_to target name)
  get_filename_component(folder ${name} DIRECTORY)
  file(RELATIVE_PATH way ${folder} ${target})
  file(MAKE_DIRECTORY $ENV{DESTDIR}${folder})
  file(CREATE_LINK ${way} $ENV{DESTDIR}${name} SYMBOLIC)
endfunction()

file(GLOB modules RELATIVE ${SOURCE} ${SOURCE}/cluster/chaos.d/*.py)
file(GLOB examples RELATIVE ${SOURCE} ${SOURCE}/cluster/examples/*)
foreach(name chaos check down hurt lib.sh status up with)
  install_as_command(cluster/${name} ${HOME}/cluster cluster)
endforeach()
foreach(file ${modules})
  install_as_command(${file} ${HOME}/cluster/chaos.d cluster/chaos.d)
endforeach()
foreach(file ${examples})
  install_as_command(${file} ${EXAMPLES} examples)
endforeach()
install_as_command(src/man/quorlock-chaos.7 ${MANDIR}/man7 man)
# The manual page can also be found by the command's name.
file(WRITE ${BINARY}/installed/man/quorlock-chaos.1 ".so man7/quorlock-chaos.7\n")
file(INSTALL ${BINARY}/installed/man/quorlock-chaos.1 DESTINATION ${MANDIR}/man1)
link_to(${HOME}/cluster/chaos ${BINDIR}/quorlock-chaos)
link_to(${BINDIR}/quorlock ${HOME}/bin/quorlock)
